package billing;

import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** The monthly run: every customer, many at once. */
record BillingRun(Biller biller, List<String> customers) {

    void run() throws InterruptedException {
        ExecutorService pool = Executors.newFixedThreadPool(Billers.CONNECTIONS_MAX);
        try {
            pool.invokeAll(customers.stream().map(this::call).toList());
        } finally {
            pool.shutdown();
        }
    }

    private Callable<Void> call(String customer) {
        return () -> {
            Report.call(biller, customer);
            return null;
        };
    }
}
