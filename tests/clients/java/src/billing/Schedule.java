package billing;

import java.time.Instant;
import java.util.Date;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.quartz.Job;
import org.quartz.JobBuilder;
import org.quartz.JobDataMap;
import org.quartz.JobExecutionContext;
import org.quartz.JobExecutionException;
import org.quartz.Scheduler;
import org.quartz.SchedulerException;
import org.quartz.Trigger;
import org.quartz.TriggerBuilder;
import org.quartz.impl.StdSchedulerFactory;

/**
 * The run on Quartz's in-memory scheduler. Its job store is this process's own, so each replica of the
 * service has the trigger, and it fires in each of them.
 */
final class Schedule {

    private Schedule() {}

    /** Runs it at that time; at once where the time has passed. */
    static void runAt(Instant time, BillingRun run) throws SchedulerException, InterruptedException {
        Scheduler scheduler = inMemory();
        CountDownLatch done = new CountDownLatch(1);
        Map<String, Object> data = Map.of("run", run, "done", done);
        Trigger once = TriggerBuilder.newTrigger().startAt(Date.from(time)).build();
        scheduler.scheduleJob(
            JobBuilder.newJob(Billing.class).usingJobData(new JobDataMap(data)).build(), once);
        scheduler.start();
        try {
            done.await();
        } finally {
            scheduler.shutdown(true);
        }
    }

    private static Scheduler inMemory() throws SchedulerException {
        Properties settings = new Properties();
        settings.setProperty("org.quartz.jobStore.class", "org.quartz.simpl.RAMJobStore");
        settings.setProperty("org.quartz.threadPool.class", "org.quartz.simpl.SimpleThreadPool");
        settings.setProperty("org.quartz.threadPool.threadCount", "1");
        settings.setProperty("org.quartz.scheduler.skipUpdateCheck", "true");
        return new StdSchedulerFactory(settings).getScheduler();
    }

    /** What fires. Public, since Quartz makes it. */
    public static final class Billing implements Job {

        @Override
        public void execute(JobExecutionContext context) throws JobExecutionException {
            JobDataMap data = context.getMergedJobDataMap();
            try {
                ((BillingRun) data.get("run")).run();
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
                throw new JobExecutionException(stopped);
            } finally {
                ((CountDownLatch) data.get("done")).countDown();
            }
        }
    }
}
