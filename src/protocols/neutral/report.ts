import { GatewayError } from '../../base/errors.ts'
import type { NeutralField } from './request.ts'

/** Field paths that are listed; more are counted. */
const MAX_LISTED = 20
/** Characters of a path: a client may name its fields as it likes. */
const MAX_PATH_LENGTH = 100

/** An object of the body that knows what of it was read. */
interface TrackedObject {
  readonly path: string
  dropUnread(): void
}

/** What of a request has no counterpart at the target. Paths are those of the client's body. */
export class TranslationReport {
  readonly #dropped = new Set<string>()
  readonly #paths: ReadonlyMap<NeutralField, string>
  readonly #followed: ReadonlySet<string>
  readonly #objects: TrackedObject[] = []

  /**
   * @param paths the client's field for each field of the neutral request
   * @param followed paths of the objects whose members are fields too: a table says what becomes of each
   */
  constructor(paths: ReadonlyMap<NeutralField, string>, followed: ReadonlySet<string>) {
    this.#paths = paths
    this.#followed = followed
  }

  /** The target gets the request without this. */
  drop(path: string): void {
    this.#dropped.add(path.slice(0, MAX_PATH_LENGTH))
  }

  /** The same, of a field of the neutral request. */
  dropField(field: NeutralField): void {
    this.drop(this.pathOf(field))
  }

  /** Who of several speaks, for targets that have no place for it. */
  dropNames(messages: readonly { readonly name: string | null }[]): void {
    if (messages.some(({ name }) => name !== null)) this.drop('messages[].name')
  }

  /** How closely a picture is looked at, for targets that decide it themselves. */
  dropDetail({ path, detail }: { readonly path: string, readonly detail: string | null }): void {
    if (detail !== null && detail !== 'auto') this.drop(`${path}.detail`)
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

  /** Remembers an object of the body until the request is read. */
  track(object: TrackedObject): void {
    if (!this.#followed.has(object.path)) this.#objects.push(object)
  }

  /** Reports what nothing has read of the objects in the body. */
  dropUnread(): void {
    for (const object of this.#objects) object.dropUnread()
  }

  /** In the order in which they were found. */
  get dropped(): readonly string[] {
    const all = [...this.#dropped]
    const more = all.length - MAX_LISTED
    return more > 0 ? [...all.slice(0, MAX_LISTED), `and ${more} more`] : all
  }
}
