/** The date of every model in a list, in seconds since 1970: clients require a date, and the gateway knows none. */
export const CREATED = 1_700_000_000
