/** The family of protocols that a request belongs to, as the ledger has it: the index has all of them. */
export type ProtocolName = string

/** An endpoint's name, as the ledger and the metrics have it. `other` is any path that is not known by name. */
export type EndpointName = string
