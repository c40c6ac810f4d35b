package billing;

import java.util.Arrays;
import java.util.List;

/** {@code Main MODE CUSTOMER…}: charges each customer once, as far as this program knows. */
final class Main {

    private Main() {}

    public static void main(String[] arguments) {
        String mode = arguments[0];
        List<String> customers = Arrays.asList(arguments).subList(1, arguments.length);
        Biller biller = biller(mode);
        customers.forEach(customer -> Report.call(biller, customer));
    }

    private static Biller biller(String mode) {
        return switch (mode) {
            case "retries-lost-answers" -> Billers.retriesLostAnswers();
            case "retries-lost-answers-and-statuses" -> Billers.retriesLostAnswersAndStatuses();
            case "retries-unavailable" -> Billers.retriesUnavailable();
            case "rebuilds-the-request" -> Billers.rebuildsTheRequest();
            case "overwritten-by-the-interceptor" -> Billers.overwrittenByTheInterceptor();
            case "overwritten-in-the-loop" -> Billers.overwrittenInTheLoop();
            case "stable-key" -> StableKey.biller();
            default -> throw new IllegalArgumentException("no such mode: " + mode);
        };
    }
}
