/**
 * When the models of a list were made, in seconds since 1970: the operator does not say, and clients want a
 * date all the same.
 */
export const CREATED = 1_700_000_000
