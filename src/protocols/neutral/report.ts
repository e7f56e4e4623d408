import { GatewayError } from '../../base/errors.ts'
import type { NeutralField } from './request.ts'

/** Maximum listed field paths; further ones are counted. */
const MAX_LISTED = 20
/** Maximum field paths that are distinguished. */
const MAX_KNOWN = 1000
/** Maximum characters of a path: the client chooses the names of fields. */
const MAX_PATH_LENGTH = 100

/** An object of the body that records which members were read. */
interface TrackedObject {
  readonly path: string
  dropUnread(): void
}

/** What has no counterpart at the target. Paths are those of the client's body. */
export class TranslationReport {
  readonly #dropped = new Set<string>()
  /** Number of fields beyond the maximum; a field may be counted twice. */
  #further = 0
  readonly #paths: ReadonlyMap<NeutralField, string>
  readonly #followed: ReadonlySet<string>
  /** Characters of the longest followed path. */
  readonly #longest: number
  readonly #objects: TrackedObject[] = []

  /**
   * @param paths the client's field for each field of the neutral request
   * @param followed paths of the objects whose members are fields of a table
   */
  constructor(paths: ReadonlyMap<NeutralField, string>, followed: ReadonlySet<string>) {
    this.#paths = paths
    this.#followed = followed
    this.#longest = Math.max(0, ...Array.from(followed, path => path.length))
  }

  /** Reports that the target does not get a field. @param path of the field in the client's body */
  drop(path: string): void {
    if (this.#dropped.size < MAX_KNOWN) this.#dropped.add(path.slice(0, MAX_PATH_LENGTH))
    else this.#further++
  }

  /** Reports that the target does not get a field of the neutral request. */
  dropField(field: NeutralField): void {
    this.drop(this.pathOf(field))
  }

  /** Reports names of speakers, for targets without a field for them. */
  dropNames(messages: readonly { readonly name: string | null }[]): void {
    if (messages.some(({ name }) => name !== null)) this.drop('messages[].name')
  }

  /** Reports the detail of an image, for targets that choose it themselves. */
  dropDetail({ path, detail }: { readonly path: string, readonly detail: string | null }): void {
    if (detail !== null && detail !== 'auto') this.drop(`${path}.detail`)
  }

  /** The client's path of the field. */
  pathOf(field: NeutralField): string {
    return this.#paths.get(field) ?? field
  }

  /**
   * Refuses the request: without this, the response would differ from what the client asks for.
   *
   * @throws GatewayError not_translatable
   */
  refuse(path: string, why: string): never {
    throw new GatewayError('not_translatable', `${path}: ${why}`, { param: path })
  }

  /** Records an object of the body until the request is read. */
  track(object: TrackedObject): void {
    // Check the length first: looking up a path flattens its string, and a request can have very many long paths.
    const { path } = object
    if (path.length > this.#longest || !this.#followed.has(path)) this.#objects.push(object)
  }

  /** Reports the members of recorded objects that were not read. */
  dropUnread(): void {
    for (const object of this.#objects) object.dropUnread()
  }

  /** In the order in which they were found. */
  get dropped(): readonly string[] {
    const all = [...this.#dropped]
    const more = all.length + this.#further - MAX_LISTED
    return more > 0 ? [...all.slice(0, MAX_LISTED), `and ${more} more`] : all
  }
}
