import { CREDENTIAL_NAME } from '../config/text/secrets.ts'
import { notCopied, toReference, variableOf } from './litellm-references.ts'
import type { Path, Source } from './source.ts'

/** The settings of one entry, including the settings of the credential that the entry names. */
export class EntrySettings {
  readonly #source: Source
  readonly #params: Path
  /** The path of the credential's values; null = the entry names no credential. */
  readonly #credential: Path | null
  readonly #note: (path: Path, text: string) => void

  /** @param params path of the entry's own settings @param credentials path of the values of each credential, by name */
  constructor(source: Source, params: Path, credentials: ReadonlyMap<string, Path>, note: (path: Path, text: string) => void) {
    this.#source = source
    this.#params = params
    this.#note = note
    const name = source.peek([...params, 'litellm_credential_name'])
    this.#credential = (typeof name === 'string' ? credentials.get(name) : undefined) ?? null
  }

  /** The path of a setting that the entry or its credential may contain. */
  pathOf(setting: string): Path {
    const own = this.ownPathOf(setting)
    return this.#credential === null || this.#source.peek(own) !== undefined ? own : [...this.#credential, setting]
  }

  /** The path of a setting that only the entry itself may contain. */
  ownPathOf(setting: string): Path {
    return [...this.#params, setting]
  }

  /** Takes a text, and converts `os.environ/NAME` to a reference of the gateway; null = the setting is absent. */
  text(setting: string): string | null {
    const written = this.#source.text(this.pathOf(setting))
    return written === null ? null : toReference(written)
  }

  /**
   * Takes a secret. The result is always a reference to the environment.
   *
   * @param variable the variable to use if the file contains the secret itself
   */
  secret(setting: string, variable: string): string | null {
    const path = this.pathOf(setting)
    const written = this.#source.text(path)
    if (written === null) return null
    const named = variableOf(written)
    if (named === null) this.#note(path, notCopied(variable))
    return `\${${named ?? variable}}`
  }

  /** Takes an http or https URL without credentials, or a reference; null = the setting is absent. */
  address(setting: string): string | null {
    const reference = this.text(setting)
    if (reference === null || reference.startsWith('${')) return reference
    return this.withoutSecrets(this.pathOf(setting), reference).replace(/\/+$/, '')
  }

  /** Takes settings. If at least one is present, adds one note. */
  note(settings: readonly string[], text: string): void {
    const found = settings.map(setting => this.pathOf(setting)).filter(path => this.#source.take(path) !== undefined)
    for (const path of found.slice(0, 1)) this.#note(path, text)
  }

  /** Removes credentials, which must not be copied, and the query, which can contain a credential. */
  withoutSecrets(path: Path, url: string): string {
    const bare = url.replace(/(?<=^\w+:\/\/)[^/]*@/, '')
    if (bare !== url) this.#note(path, 'the credentials in the address are not copied: put them under auth')
    const plain = bare.replace(/[?#].*$/s, '')
    if (plain !== bare) this.#note(path, "what follows the path is not copied: clients' own queries go there")
    return plain
  }

  /** Takes the headers for the entry's requests, by lower-case name. */
  headers(): Record<string, string> {
    const organization = this.#source.text(this.ownPathOf('organization'))
    const path = this.ownPathOf('extra_headers')
    const extra = this.#source.take(path)
    const entries = typeof extra === 'object' && extra !== null ? Object.entries(extra) : []
    const named = entries.map(([name, value]) => [name.toLowerCase(), this.#header([...path, name], name, String(value))] as const)
    return {
      ...organization !== null && { 'openai-organization': toReference(organization) },
      ...Object.fromEntries(named),
    }
  }

  /** The value of a header. A credential is always written as a reference to the environment. */
  #header(path: Path, name: string, value: string): string {
    if (variableOf(value) !== null || !CREDENTIAL_NAME.test(name)) return toReference(value)
    const variable = name.toUpperCase().replace(/\W/g, '_')
    this.#note(path, `the value itself is not copied: put it into the environment as ${variable}`)
    return `\${${variable}}`
  }
}
