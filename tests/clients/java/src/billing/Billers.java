package billing;

import java.util.UUID;
import org.apache.http.HttpRequestInterceptor;
import org.apache.http.client.config.RequestConfig;
import org.apache.http.client.methods.HttpPost;
import org.apache.http.impl.client.CloseableHttpClient;
import org.apache.http.impl.client.DefaultHttpRequestRetryHandler;
import org.apache.http.impl.client.DefaultServiceUnavailableRetryStrategy;
import org.apache.http.impl.client.HttpClientBuilder;
import org.apache.http.impl.client.HttpClients;

/** How billing services charge twice. Each of these has passed a code review somewhere. */
final class Billers {

    /** As many requests at once as {@link Race} has threads. */
    static final int CONNECTIONS_MAX = 32;

    private static final int RETRIES = 3;
    private static final long PAUSE_MS = 100;

    private Billers() {}

    /** Every send gets a key, and a retry is a send: HttpClient runs its interceptors for each. */
    static HttpRequestInterceptor freshKeyOnEverySend() {
        return (request, context) ->
            request.setHeader("Idempotency-Key", UUID.randomUUID().toString());
    }

    /** Repeats lost answers, and nothing else. */
    static Biller retriesLostAnswers() {
        CloseableHttpClient client = http(80_000)
            .addInterceptorLast(freshKeyOnEverySend())
            .setRetryHandler(new DefaultHttpRequestRetryHandler(RETRIES, true))
            .build();
        return customer -> client.execute(Stripe.charge(customer), Answer::of);
    }

    /** Repeats lost answers and what may pass: 409 and 5xx. */
    static Biller retriesLostAnswersAndStatuses() {
        CloseableHttpClient client = http(80_000)
            .addInterceptorLast(freshKeyOnEverySend())
            .setRetryHandler(new DefaultHttpRequestRetryHandler(RETRIES, true))
            .setServiceUnavailableRetryStrategy(new RetryOnStatus(RETRIES, PAUSE_MS))
            .build();
        return customer -> client.execute(Stripe.charge(customer), Answer::of);
    }

    /** Repeats 503 by HttpClient's own strategy. */
    static Biller retriesUnavailable() {
        CloseableHttpClient client = http(80_000)
            .addInterceptorLast(freshKeyOnEverySend())
            .setServiceUnavailableRetryStrategy(
                new DefaultServiceUnavailableRetryStrategy(RETRIES, (int) PAUSE_MS))
            .build();
        return customer -> client.execute(Stripe.charge(customer), Answer::of);
    }

    /** Builds each attempt anew, key and all. Gives up on an answer after three seconds. */
    static Biller rebuildsTheRequest() {
        CloseableHttpClient client = http(3_000).disableAutomaticRetries().build();
        return customer -> loop().call(() -> {
            HttpPost request = Stripe.charge(customer);
            request.setHeader("Idempotency-Key", UUID.randomUUID().toString());
            return client.execute(request, Answer::of);
        });
    }

    /** A stable key that the shared client's interceptor writes over. */
    static Biller overwrittenByTheInterceptor() {
        CloseableHttpClient client = http(80_000)
            .addInterceptorLast(freshKeyOnEverySend())
            .setRetryHandler(new DefaultHttpRequestRetryHandler(RETRIES, true))
            .setServiceUnavailableRetryStrategy(new RetryOnStatus(RETRIES, PAUSE_MS))
            .build();
        return customer -> {
            HttpPost request = Stripe.charge(customer);
            request.setHeader("Idempotency-Key", "2026-08:" + customer);
            return client.execute(request, Answer::of);
        };
    }

    /** A stable key that the loop makes fresh again "so that Stripe does not refuse the retry". */
    static Biller overwrittenInTheLoop() {
        CloseableHttpClient client = http(80_000).disableAutomaticRetries().build();
        return customer -> {
            HttpPost request = Stripe.charge(customer);
            request.setHeader("Idempotency-Key", "2026-08:" + customer);
            return loop().call(() -> {
                Answer answer = null;
                try {
                    answer = client.execute(request, Answer::of);
                    return answer;
                } finally {
                    if (answer == null || answer.status() != 200) {
                        request.setHeader("Idempotency-Key", UUID.randomUUID().toString());
                    }
                }
            });
        };
    }

    private static Retry loop() {
        return new Retry(RETRIES + 1, PAUSE_MS,
            answer -> answer.status() == 409 || answer.status() >= 500);
    }

    static HttpClientBuilder http(int answerTimeoutMs) {
        RequestConfig timeouts = RequestConfig.custom()
            .setConnectTimeout(5_000)
            .setSocketTimeout(answerTimeoutMs)
            .build();
        return HttpClients.custom()
            .setDefaultRequestConfig(timeouts)
            .setMaxConnPerRoute(CONNECTIONS_MAX)
            .setMaxConnTotal(CONNECTIONS_MAX);
    }
}
