/** Changes of requests and responses, from one place of the configuration. */
export interface EditRules {
  readonly requestHeaders: HeaderEdits | null
  readonly responseHeaders: HeaderEdits | null
  readonly body: BodyEdits | null
  readonly system: { readonly prepend: string | null, readonly append: string | null } | null
  /** true = marks for the prompt cache. */
  readonly cache: boolean
}

export interface HeaderEdits {
  /** Values by names in lower case. */
  readonly set: readonly HeaderEdit[]
  readonly default: readonly HeaderEdit[]
  readonly remove: readonly string[]
}

export interface HeaderEdit {
  readonly name: string
  readonly value: readonly ValuePart[]
}

/** Text, or a value of the request. */
export type ValuePart = string | { readonly of: 'key' | 'caller' | 'group' | 'request_id' } | { readonly of: 'tag', readonly tag: string }

export interface BodyEdits {
  readonly set: ReadonlyMap<string, unknown>
  readonly default: ReadonlyMap<string, unknown>
  readonly cap: ReadonlyMap<string, number>
  readonly remove: readonly string[]
}
