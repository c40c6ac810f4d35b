package billing;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.function.Predicate;

/** A retry library in small, in the manner of Resilience4j: it calls again, and knows nothing of HTTP. */
record Retry(int attemptsMax, long firstPauseMs, Predicate<Answer> again) {

    interface Attempt {

        Answer call() throws IOException;
    }

    /** The last attempt's answer or exception is the caller's. The pause doubles from one to the next. */
    Answer call(Attempt attempt) throws IOException {
        for (int number = 1; ; number++) {
            boolean last = number == attemptsMax;
            try {
                Answer answer = attempt.call();
                if (last || !again.test(answer)) {
                    return answer;
                }
            } catch (IOException lost) {
                if (last) {
                    throw lost;
                }
            }
            pause(firstPauseMs << (number - 1));
        }
    }

    private static void pause(long ms) throws IOException {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
            throw new InterruptedIOException("interrupted between two attempts");
        }
    }
}
