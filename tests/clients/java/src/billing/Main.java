package billing;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Instant;
import java.util.Arrays;
import java.util.List;

/**
 * {@code Main HOW MODE CUSTOMER…}: charges each customer once, as far as this program knows.
 *
 * <p>HOW is {@code one-by-one}, or {@code executor} or {@code quartz}. These two say {@code ready} and wait
 * for a line: the time at which to start, which Quartz keeps and the executor takes for now.
 */
final class Main {

    private Main() {}

    public static void main(String[] arguments) throws Exception {
        List<String> customers = Arrays.asList(arguments).subList(2, arguments.length);
        BillingRun run = new BillingRun(biller(arguments[1]), customers);
        switch (arguments[0]) {
            case "one-by-one" -> customers.forEach(customer -> Report.call(run.biller(), customer));
            case "executor" -> {
                start();
                run.run();
            }
            case "quartz" -> Schedule.runAt(Instant.parse(start()), run);
            default -> throw new IllegalArgumentException("no such way: " + arguments[0]);
        }
    }

    private static String start() throws Exception {
        System.out.println("ready");
        return new BufferedReader(new InputStreamReader(System.in)).readLine();
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
            case "stable-key-and-lost-answers" -> StableKey.repeatsLostAnswersOnly();
            default -> throw new IllegalArgumentException("no such mode: " + mode);
        };
    }
}
