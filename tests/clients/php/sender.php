<?php

// Sends one request on PHP's curl extension as stripe-php does (contract §3.4, §3.5, §4.3): a Bearer key, a
// form with its length, an empty Expect header, and stripe-php's rules for trying again. With retries set
// on a client and not globally, stripe-php sends no Idempotency-Key, so neither does this without --key.
//
//   php sender.php [--key=KEY] [--retries=N] [--timeout-ms=N] METHOD PATH [NAME=VALUE…]
//
// SPENDCAP_URL is the base URL and VAULT_KEY the key. Prints one JSON object about the last answer; its
// status is 0 where no answer came.

declare(strict_types=1);

// stripe-php's first delay is 500 ms.
const RETRY_DELAY_US = 50_000;

$options = getopt('', ['key:', 'retries:', 'timeout-ms:'], $rest);
[$method, $path] = array_slice($argv, $rest, 2) + [null, null];
if ($path === null) {
    fwrite(STDERR, "usage: sender.php [--key=KEY] [--retries=N] [--timeout-ms=N] METHOD PATH [NAME=VALUE…]\n");
    exit(2);
}
$form = implode('&', array_map('encode', array_slice($argv, $rest + 2)));
$headers = [
    'Authorization: Bearer ' . getenv('VAULT_KEY'),
    'Content-Type: application/x-www-form-urlencoded',
    'User-Agent: spendcap-test (ext-curl as stripe-php)',
    'Expect: ',
];
if (isset($options['key'])) {
    $headers[] = 'Idempotency-Key: ' . $options['key'];
}
$wish = [
    CURLOPT_URL => getenv('SPENDCAP_URL') . $path . ($method === 'GET' && $form !== '' ? '?' . $form : ''),
    CURLOPT_HTTPHEADER => $headers,
    CURLOPT_RETURNTRANSFER => true,
    CURLOPT_CONNECTTIMEOUT => 30,
    CURLOPT_TIMEOUT_MS => (int) ($options['timeout-ms'] ?? 80_000),
];
if ($method === 'POST') {
    $wish += [CURLOPT_POST => 1, CURLOPT_POSTFIELDS => $form];
}
echo json_encode(send($wish, (int) ($options['retries'] ?? 0))), "\n";

/** Sends until there is an answer that is not to be retried. */
function send(array $wish, int $retries): array
{
    $curl = curl_init();
    for ($attempt = 1; ; ++$attempt) {
        $should_retry = null;
        $wish[CURLOPT_HEADERFUNCTION] = function ($curl, string $line) use (&$should_retry): int {
            if (preg_match('/^stripe-should-retry:\s*(true|false)\s*$/i', $line, $found)) {
                $should_retry = strtolower($found[1]) === 'true';
            }
            return strlen($line);
        };
        curl_reset($curl);
        curl_setopt_array($curl, $wish);
        $body = curl_exec($curl);
        $error = curl_errno($curl);
        $status = $body === false ? 0 : curl_getinfo($curl, CURLINFO_RESPONSE_CODE);
        if ($attempt > $retries || !retryable($error, $status, $should_retry)) {
            $answer = $body === false ? null : json_decode($body, true);
            return [
                'attempts' => $attempt,
                'status' => $status,
                'id' => $answer['id'] ?? '',
                'type' => $answer['error']['type'] ?? '',
                'code' => $answer['error']['code'] ?? '',
                'failure' => curl_error($curl),
            ];
        }
        usleep(RETRY_DELAY_US);
    }
}

/** stripe-php's shouldRetry: among network faults only a timeout and a refused connection. */
function retryable(int $error, int $status, ?bool $should_retry): bool
{
    if (in_array($error, [CURLE_OPERATION_TIMEDOUT, CURLE_COULDNT_CONNECT], true)) {
        return true;
    }
    return $should_retry ?? ($status === 409 || $status >= 500);
}

function encode(string $field): string
{
    [$name, $value] = explode('=', $field, 2);
    return urlencode($name) . '=' . urlencode($value);
}
