import { BoundedNames } from '../base/bounded-names.ts'

/** Callers of one issuer that become labels; further ones count as `other`. */
const MAX_CALLERS = 1_000

/** Decides which callers become label values: an organization can have any number of them. */
export class CallerLabels {
  readonly #max: number
  /** Issuers are configured: otherwise every name is a label. */
  isActive = false
  /** The beginnings of callers' names. */
  #prefixes: ReadonlySet<string> = new Set()
  /** Names that became labels, by prefix. */
  readonly #names = new BoundedNames()

  /** @param workers number of processes whose labels are counted together: each gets its share */
  constructor(workers = 1) {
    this.#max = Math.max(1, Math.floor(MAX_CALLERS / workers))
  }

  /** @param issuers the names of the issuers */
  configure(issuers: readonly string[]): void {
    this.#prefixes = new Set(issuers.map(issuer => `${issuer}:`))
    this.#names.keep(this.#prefixes)
    this.isActive = issuers.length > 0
  }

  /** @param key the name of a key or a caller @returns for example `corp:other` */
  labelOf(key: string | null): string | null {
    if (key === null) return key
    const prefix = key.slice(0, key.indexOf(':') + 1)
    return !this.#prefixes.has(prefix) || this.#names.admits(prefix, key, this.#max) ? key : `${prefix}other`
  }
}
