package billing;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;

/** One line of JSON on standard output for each call: how it ended. */
final class Report {

    private static final ObjectMapper JSON = new ObjectMapper();

    private Report() {}

    /** Charges the customer and reports it. */
    static void call(Biller biller, String customer) {
        ObjectNode line = JSON.createObjectNode().put("customer", customer);
        try {
            Answer answer = biller.charge(customer);
            line.put("status", answer.status())
                .put("charge", answer.charge())
                .put("code", answer.code())
                .put("replayed", answer.replayed())
                .put("verdict", Verdict.of(answer).name());
        } catch (IOException lost) {
            line.put("exception", lost.toString());
        }
        System.out.println(line);
    }
}
