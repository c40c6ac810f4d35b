package billing;

/** What the billing run does about an answer. */
enum Verdict {
    PAID,
    /** The customer's card failed: dunning begins. */
    CARD_FAILED,
    /** The cap of the vault key is reached: nobody's card failed, and an operator must look. */
    STOP_THE_RUN,
    /** Neither: the next run tries again. */
    LATER;

    static Verdict of(Answer answer) {
        // doc: verdict
        return switch (answer.code()) {
            case "spend_cap_reached", "charge_limit_exceeded" -> STOP_THE_RUN;
            case "card_declined", "expired_card", "insufficient_funds" -> CARD_FAILED;
            default -> answer.status() == 200 ? PAID : LATER;
        };
        // doc: end
    }
}
