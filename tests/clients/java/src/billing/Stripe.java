package billing;

import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.http.client.entity.UrlEncodedFormEntity;
import org.apache.http.client.methods.HttpPost;
import org.apache.http.message.BasicNameValuePair;

/** Where Stripe is and how it is asked. */
final class Stripe {

    // doc: settings
    static final String API_BASE = System.getenv("STRIPE_API_BASE");
    static final String API_KEY = System.getenv("STRIPE_API_KEY");
    // doc: end

    private Stripe() {}

    /** The monthly fee. The idempotency key is the caller's business. */
    static HttpPost charge(String customer) {
        // doc: request
        HttpPost request = new HttpPost(API_BASE + "/v1/charges");
        request.setHeader("Authorization", "Bearer " + API_KEY);
        // doc: end
        List<BasicNameValuePair> form = List.of(
            new BasicNameValuePair("amount", "9900"),
            new BasicNameValuePair("currency", "usd"),
            new BasicNameValuePair("customer", customer));
        request.setEntity(new UrlEncodedFormEntity(form, StandardCharsets.UTF_8));
        return request;
    }
}
