package billing;

import java.util.UUID;
import org.apache.http.HttpRequestInterceptor;
import org.apache.http.client.config.RequestConfig;
import org.apache.http.client.methods.HttpPost;
import org.apache.http.impl.client.CloseableHttpClient;
import org.apache.http.impl.client.DefaultHttpRequestRetryHandler;
import org.apache.http.impl.client.HttpClients;

/** The fix: a key that names the charge, and a header of its own that names the attempt. */
final class StableKey {

    private static final String PERIOD = "2026-08";

    private StableKey() {}

    static CloseableHttpClient client() {
        // doc: client
        HttpRequestInterceptor attemptId = (request, context) ->
            request.setHeader("X-Attempt-Id", UUID.randomUUID().toString());
        RequestConfig timeouts = RequestConfig.custom()
            .setConnectTimeout(5_000)
            .setSocketTimeout(80_000)
            .build();
        CloseableHttpClient client = HttpClients.custom()
            .setDefaultRequestConfig(timeouts)
            .addInterceptorLast(attemptId)
            .setRetryHandler(new DefaultHttpRequestRetryHandler(3, true))
            .setServiceUnavailableRetryStrategy(new RetryOnStatus(3, 500))
            .build();
        // doc: end
        return client;
    }

    static Biller biller() {
        return by(client());
    }

    /** Goes by no status: what is not an {@code IOException} is an answer. */
    static Biller repeatsLostAnswersOnly() {
        return by(Billers.http(80_000)
            .setRetryHandler(new DefaultHttpRequestRetryHandler(3, true))
            .build());
    }

    private static Biller by(CloseableHttpClient client) {
        return customer -> {
            // doc: key
            HttpPost request = Stripe.charge(customer);
            request.setHeader("Idempotency-Key", "fee:" + PERIOD + ":" + customer);
            return client.execute(request, Answer::of);
            // doc: end
        };
    }
}
