import { GatewayError } from '../../base/errors.ts'
import type { NeutralField } from './request.ts'

/** Maximum number of listed paths. Further paths are only counted. */
const MAX_LISTED = 20
/** Maximum number of paths of which duplicates are recognised. */
const MAX_KNOWN = 1000
/** Maximum characters of a path, because the client chooses the names of fields. */
const MAX_PATH_LENGTH = 100

/** An object of the body that records which of its members were read. */
interface TrackedObject {
  readonly path: string
  dropUnread(): void
}

/** Collects the paths in the client's body of everything that the target does not get. */
export class TranslationReport {
  readonly #dropped = new Set<string>()
  /** Number of paths above `MAX_KNOWN`. A path may be counted twice. */
  #further = 0
  readonly #paths: ReadonlyMap<NeutralField, string>
  readonly #followed: ReadonlySet<string>
  /** Characters of the longest followed path. */
  readonly #longest: number
  readonly #objects: TrackedObject[] = []

  /** @param paths the client's path of each neutral field @param followed paths of objects whose members are fields of a field table */
  constructor(paths: ReadonlyMap<NeutralField, string>, followed: ReadonlySet<string>) {
    this.#paths = paths
    this.#followed = followed
    this.#longest = Math.max(0, ...Array.from(followed, path => path.length))
  }

  drop(path: string): void {
    if (this.#dropped.size < MAX_KNOWN) this.#dropped.add(path.slice(0, MAX_PATH_LENGTH))
    else this.#further++
  }

  dropField(field: NeutralField): void {
    this.drop(this.pathOf(field))
  }

  /** Reports the names of speakers, for targets without a field for names. */
  dropNames(messages: readonly { readonly name: string | null }[]): void {
    if (messages.some(({ name }) => name !== null)) this.drop('messages[].name')
  }

  /** Reports the detail of an image, for targets that choose the detail themselves. */
  dropDetail({ path, detail }: { readonly path: string, readonly detail: string | null }): void {
    if (detail !== null && detail !== 'auto') this.drop(`${path}.detail`)
  }

  pathOf(field: NeutralField): string {
    return this.#paths.get(field) ?? field
  }

  /** Refuses a field without which the client would not get the response that it asks for. @throws GatewayError not_translatable */
  refuse(path: string, why: string): never {
    throw new GatewayError('not_translatable', `${path}: ${why}`, { param: path })
  }

  /** Keeps an object of the body for `dropUnread`. */
  track(object: TrackedObject): void {
    // Check the length first, because a look-up flattens the string, and a request can have very many long paths.
    const { path } = object
    if (path.length > this.#longest || !this.#followed.has(path)) this.#objects.push(object)
  }

  /** Reports members that no reader has read. */
  dropUnread(): void {
    for (const object of this.#objects) object.dropUnread()
  }

  /** The reported paths, in the order in which they were found. */
  get dropped(): readonly string[] {
    const all = [...this.#dropped]
    const more = all.length + this.#further - MAX_LISTED
    return more > 0 ? [...all.slice(0, MAX_LISTED), `and ${more} more`] : all
  }
}
