/** The date of every model in a list, in seconds since 1970. Clients require a date, but the gateway does not know the real dates. */
export const CREATED = 1_700_000_000
