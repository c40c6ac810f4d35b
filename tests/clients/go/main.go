// Sends one request on Go's net/http as stripe-go does (contract §3.4, §3.5, §4.3): a Bearer key, a form
// whose length net/http cannot see and which it therefore sends chunked, one Idempotency-Key for all
// attempts, and stripe-go's rules for trying again.
//
//	sender [-key KEY] [-retries N] METHOD PATH [NAME=VALUE…]
//
// SPENDCAP_URL is the base URL and VAULT_KEY the key. Prints one JSON object about the last answer.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// retryDelay is stripe-go's first delay, 500 ms, in short.
const retryDelay = 50 * time.Millisecond

// timeout is stripe-go's.
const timeout = 80 * time.Second

// report is what is printed. Status is 0 where no answer came.
type report struct {
	Attempts int    `json:"attempts"`
	Status   int    `json:"status"`
	ID       string `json:"id"`
	Type     string `json:"type"`
	Code     string `json:"code"`
	Failure  string `json:"failure"`
}

// lengthless hides what its reader is, so that net/http leaves ContentLength at -1 as for stripe-go's body.
type lengthless struct{ io.Reader }

func (lengthless) Close() error { return nil }

func main() {
	key := flag.String("key", "", "the Idempotency-Key; without it stripe-go makes one")
	retries := flag.Int("retries", 2, "stripe-go's MaxNetworkRetries")
	flag.Parse()
	if flag.NArg() < 2 {
		fail(fmt.Errorf("usage: sender [-key KEY] [-retries N] METHOD PATH [NAME=VALUE…]"))
	}
	request, form, err := build(flag.Arg(0), flag.Arg(1), flag.Args()[2:], *key)
	if err != nil {
		fail(err)
	}
	encoder := json.NewEncoder(os.Stdout)
	if err := encoder.Encode(send(request, form, *retries)); err != nil {
		fail(err)
	}
}

// build makes the request without its body, which every attempt gets anew.
func build(method, path string, fields []string, key string) (*http.Request, string, error) {
	form := url.Values{}
	for _, field := range fields {
		name, value, found := strings.Cut(field, "=")
		if !found {
			return nil, "", fmt.Errorf("%q is not NAME=VALUE", field)
		}
		form.Add(name, value)
	}
	target, body := os.Getenv("SPENDCAP_URL")+path, form.Encode()
	if method == http.MethodGet {
		target, body = target+"?"+body, ""
	}
	request, err := http.NewRequest(method, target, nil)
	if err != nil {
		return nil, "", err
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("VAULT_KEY"))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("User-Agent", "spendcap-test (net/http as stripe-go)")
	if method == http.MethodPost {
		if key == "" {
			key = fmt.Sprintf("%d_%d", time.Now().UnixNano(), os.Getpid())
		}
		request.Header.Set("Idempotency-Key", key)
	}
	return request, body, nil
}

func send(request *http.Request, form string, retries int) report {
	client := http.Client{Timeout: timeout}
	for attempt := 1; ; attempt++ {
		if request.Method == http.MethodPost {
			request.Body = lengthless{bytes.NewReader([]byte(form))}
			request.GetBody = func() (io.ReadCloser, error) {
				return lengthless{bytes.NewReader([]byte(form))}, nil
			}
		}
		response, err := client.Do(request)
		seen := report{Attempts: attempt}
		if err == nil {
			err = seen.read(response)
		}
		if err != nil {
			seen.Failure = err.Error()
		}
		if attempt > retries || !retryable(response, seen) {
			return seen
		}
		time.Sleep(retryDelay)
	}
}

func (seen *report) read(response *http.Response) error {
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	seen.Status = response.StatusCode
	var parsed struct {
		ID    string `json:"id"`
		Error struct {
			Type string `json:"type"`
			Code string `json:"code"`
		} `json:"error"`
	}
	if err := json.Unmarshal(body, &parsed); err != nil {
		return err
	}
	seen.ID, seen.Type, seen.Code = parsed.ID, parsed.Error.Type, parsed.Error.Code
	return nil
}

// retryable is stripe-go's shouldRetry: whatever failed below Stripe's envelope, then the header, then the
// status.
func retryable(response *http.Response, seen report) bool {
	if seen.Failure != "" {
		return true
	}
	switch response.Header.Get("Stripe-Should-Retry") {
	case "true":
		return true
	case "false":
		return false
	}
	lockTimeout := seen.Status == http.StatusTooManyRequests && seen.Code == "lock_timeout"
	return seen.Status == http.StatusConflict || seen.Status >= 500 || lockTimeout
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(2)
}
