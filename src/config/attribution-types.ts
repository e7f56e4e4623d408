/** Which users and tags requests have, and where each is read; null in the configuration = none. */
export interface AttributionConfig {
  /** Sources of the end user, the first with a value counts; empty = users are not read. */
  readonly user: readonly AttributionSource[]
  /** Sources of each tag, sorted by name. */
  readonly tags: ReadonlyMap<string, readonly AttributionSource[]>
  /** Tags without which a request is refused; `user` = the end user. */
  readonly require: readonly string[]
  /** Different values of a tag that are kept; further ones count as `other`. */
  readonly values: number
}

export type AttributionSource =
  /** The header with all tags: `x-gateway-tags: project=alpha,env=prod`. */
  | { readonly from: 'tags' }
  /** A header of its own; lower-case name. */
  | { readonly from: 'header', readonly name: string }
  /** A claim of the caller's verified token: its name, or a path such as `realm_access.project`. */
  | { readonly from: 'claim', readonly name: string }
  /** The members of the body that the vendors have for it. */
  | { readonly from: 'body' }
  /** The reply of a hook. */
  | { readonly from: 'hook' }
  /** The tags of the key; only of tags. */
  | { readonly from: 'key' }
