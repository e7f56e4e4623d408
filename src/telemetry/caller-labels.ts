/** Callers of one issuer that become labels; further ones count as `other`. */
const MAX_CALLERS = 1_000

/** Decides which callers become label values: an organization can have any number of them. */
export class CallerLabels {
  readonly #max: number
  /** Issuers are configured: otherwise every name is a label. */
  isActive = false
  /** Names that became labels, by the beginning of the callers' names. */
  #names = new Map<string, Set<string>>()

  /** @param workers number of processes whose labels are counted together: each gets its share */
  constructor(workers = 1) {
    this.#max = Math.max(1, Math.floor(MAX_CALLERS / workers))
  }

  /** @param issuers the names of the issuers */
  configure(issuers: readonly string[]): void {
    this.#names = new Map(issuers.map(issuer => [`${issuer}:`, this.#names.get(`${issuer}:`) ?? new Set()]))
    this.isActive = issuers.length > 0
  }

  /** @param key the name of a key or a caller @returns for example `corp:other` */
  labelOf(key: string | null): string | null {
    if (key === null) return key
    const prefix = key.slice(0, key.indexOf(':') + 1)
    const names = this.#names.get(prefix)
    if (names === undefined || names.has(key)) return key
    if (names.size >= this.#max) return `${prefix}other`
    names.add(key)
    return key
  }
}
