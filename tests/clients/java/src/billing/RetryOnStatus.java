package billing;

import org.apache.http.Header;
import org.apache.http.HttpResponse;
import org.apache.http.client.ServiceUnavailableRetryStrategy;
import org.apache.http.protocol.HttpContext;

/** Sends again what Stripe's own SDKs send again: 409, 5xx, and whatever Stripe-Should-Retry says. */
final class RetryOnStatus implements ServiceUnavailableRetryStrategy {

    private final int retriesMax;
    private final long pauseMs;

    RetryOnStatus(int retriesMax, long pauseMs) {
        this.retriesMax = retriesMax;
        this.pauseMs = pauseMs;
    }

    // doc: retry
    @Override
    public boolean retryRequest(HttpResponse response, int execution, HttpContext context) {
        return execution <= retriesMax && mayHelp(response);
    }

    static boolean mayHelp(HttpResponse response) {
        Header told = response.getFirstHeader("Stripe-Should-Retry");
        if (told != null) {
            return told.getValue().equals("true");
        }
        int status = response.getStatusLine().getStatusCode();
        return status == 409 || status >= 500;
    }
    // doc: end

    @Override
    public long getRetryInterval() {
        return pauseMs;
    }
}
