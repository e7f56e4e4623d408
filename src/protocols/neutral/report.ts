import { GatewayError } from '../../base/errors.ts'
import { asObject } from './json.ts'
import type { JsonObject } from './json.ts'
import type { NeutralField } from './request.ts'

/** Field paths that are listed; more are counted. */
const MAX_LISTED = 20
/** Characters of a path: a client may name its fields as it likes. */
const MAX_PATH_LENGTH = 100

/** What of a request has no counterpart at the target. Paths are those of the client's body. */
export class TranslationReport {
  readonly #dropped = new Set<string>()
  /** The client's field for each field of the neutral request. */
  readonly #paths: ReadonlyMap<NeutralField, string>

  constructor(paths: ReadonlyMap<NeutralField, string>) {
    this.#paths = paths
  }

  /** The target gets the request without this. */
  drop(path: string): void {
    this.#dropped.add(path.slice(0, MAX_PATH_LENGTH))
  }

  /** The same, of a field of the neutral request. */
  dropField(field: NeutralField): void {
    this.drop(this.pathOf(field))
  }

  /** As the client writes the field. */
  pathOf(field: NeutralField): string {
    return this.#paths.get(field) ?? field
  }

  /**
   * Without this the response would be another one than the client asks for.
   *
   * @throws GatewayError not_translatable
   */
  refuse(path: string, why: string): never {
    throw new GatewayError('not_translatable', `${path}: ${why}`, { param: path })
  }

  /**
   * The objects of a list in the client's body; null and undefined are an empty one.
   *
   * @param path of the list
   * @throws GatewayError not_translatable where it is no list of objects: the target would get a request without it
   */
  objectsOf(value: unknown, path: string): JsonObject[] {
    if (value === null || value === undefined) return []
    if (!Array.isArray(value)) this.refuse(path, 'it must be a list of objects')
    return value.map((item: unknown, at) => asObject(item) ?? this.refuse(`${path}[${at}]`, 'it must be an object'))
  }

  /** The same, of the conversation: null is none. Where it is absent, the target has its own error for that. */
  conversationOf(value: unknown, path: string): JsonObject[] {
    return value === null ? this.refuse(path, 'it must be a list of objects') : this.objectsOf(value, path)
  }

  /** In the order in which they were found. */
  get dropped(): readonly string[] {
    const all = [...this.#dropped]
    const more = all.length - MAX_LISTED
    return more > 0 ? [...all.slice(0, MAX_LISTED), `and ${more} more`] : all
  }
}
