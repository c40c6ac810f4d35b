package billing;

import java.io.IOException;

/** Charges a customer for the period. */
interface Biller {

    Answer charge(String customer) throws IOException;
}
