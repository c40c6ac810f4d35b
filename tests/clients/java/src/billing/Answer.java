package billing;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.MissingNode;
import java.io.IOException;
import org.apache.http.HttpResponse;
import org.apache.http.util.EntityUtils;

/** What Stripe said. {@code charge} and {@code code} are empty where the answer has none. */
record Answer(int status, String charge, String code, boolean replayed) {

    private static final ObjectMapper JSON = new ObjectMapper();

    static Answer of(HttpResponse response) throws IOException {
        JsonNode body = json(EntityUtils.toString(response.getEntity()));
        int status = response.getStatusLine().getStatusCode();
        String charge = status == 200 ? body.path("id").asText() : "";
        String code = body.at("/error/code").asText();
        return new Answer(status, charge, code, response.containsHeader("Idempotent-Replayed"));
    }

    /** A load balancer's page is an answer without fields. */
    private static JsonNode json(String body) {
        try {
            return JSON.readTree(body);
        } catch (JsonProcessingException notJson) {
            return MissingNode.getInstance();
        }
    }
}
