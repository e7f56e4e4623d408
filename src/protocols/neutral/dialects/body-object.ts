import { isObject } from '../../../base/is-object.ts'
import { withoutNulls, type JsonObject } from '../json.ts'
import type { TranslationReport } from '../report.ts'

const INDEX = /\[\d+\]/g

/**
 * An object in the body of a translated request. Each method reads a member as one type; null always means that the client did not send the
 * member. A member of another type is refused, because the target would not get it. Members that were not read are reported as dropped.
 */
export class BodyObject {
  /** Path of the object, such as `messages[0].content[1]`; empty = the whole body. */
  readonly path: string
  protected readonly report: TranslationReport
  readonly #members: JsonObject
  readonly #read: string[] = []
  #isDropped = false

  constructor(members: JsonObject, path: string, report: TranslationReport) {
    this.path = path
    this.report = report
    this.#members = members
    report.track(this)
  }

  /** Reads a member that may have several types. */
  value(name: string): unknown {
    this.#read.push(name)
    return this.#members[name] ?? null
  }

  /** Marks members as read, so that they are not reported as dropped. */
  ignore(...names: readonly string[]): void {
    this.#read.push(...names)
  }

  /** @throws GatewayError not_translatable if the member has another type; the other methods throw it too */
  text(name: string): string | null {
    const value = this.value(name)
    return value === null || typeof value === 'string' ? value : this.refuse(name, 'it must be a string')
  }

  number(name: string): number | null {
    const value = this.value(name)
    return value === null ? null : this.numberOf(value) ?? this.refuse(name, 'it must be a number')
  }

  boolean(name: string): boolean | null {
    const value = this.value(name)
    return value === null ? null : this.booleanOf(value) ?? this.refuse(name, 'it must be true or false')
  }

  word<T extends string>(name: string, words: readonly T[]): T | null {
    const value = this.value(name)
    if (value === null) return null
    return this.wordOf(value, words) ?? this.refuse(name, `it must be one of ${words.join(', ')}`)
  }

  /** Reads a word. An unknown word is dropped and reported, because the target may refuse it. */
  known<T extends string>(name: string, words: readonly T[]): T | null {
    const value = this.text(name)
    if (value === null) return null
    const word = this.wordOf(value, words)
    if (word === null) this.drop(name)
    return word
  }

  /** Reads an object with arbitrary names, such as a schema. */
  json(name: string): JsonObject | null {
    const value = this.value(name)
    return value === null || isObject(value) ? value : this.refuse(name, 'it must be an object')
  }

  object(name: string): BodyObject | null {
    const value = this.json(name)
    return value && this.open(value, this.#pathOf(name))
  }

  /** Reads a list of objects; empty = the client did not send the member. */
  objects(name: string): BodyObject[] {
    return this.#items(name, isObject, 'objects').map((item, at) =>
      isObject(item) ? this.open(item, `${this.#pathOf(name)}[${at}]`) : this.refuse(`${name}[${at}]`, 'it must be an object'))
  }

  /** Reads the conversation, and refuses null. If the conversation is absent, the target reports the error. */
  conversation(name: string): BodyObject[] {
    return this.#members[name] === null ? this.refuse(name, 'it must be a list of objects') : this.objects(name)
  }

  texts(name: string): string[] {
    return this.#items(name, isText, 'strings').map((item, at) => isText(item) ? item : this.refuse(`${name}[${at}]`, 'it must be a string'))
  }

  /** Reads an object whose values are all text; null = absent or empty. */
  record(name: string): Readonly<Record<string, string>> | null {
    const value = withoutNulls(this.json(name) ?? {})
    const other = Object.keys(value).find(key => !isText(value[key]))
    if (other !== undefined) return this.refuse(`${name}.${other}`, 'it must be a string')
    return Object.keys(value).length === 0 ? null : value as Record<string, string>
  }

  content(name: string): string | BodyObject[] {
    const value = this.value(name)
    return isText(value) ? value : this.objects(name)
  }

  /** @throws GatewayError not_translatable */
  refuse(name: string, why: string): never {
    return this.report.refuse(this.#pathOf(name), why)
  }

  drop(name: string): void {
    this.report.drop(this.#pathOf(name).replace(INDEX, '[]'))
  }

  /** Drops the whole object. @param kind names the object in the report */
  dropWhole(kind: string | null): void {
    this.#isDropped = true
    this.drop(kind ?? 'type')
  }

  /** Reports the members that were not read, except values that have no effect. */
  dropUnread(): void {
    if (this.#isDropped) return
    for (const [name, value] of Object.entries(this.#members)) {
      if (!this.#read.includes(name) && !isHarmless(value)) this.drop(name)
    }
  }

  /** Names of the members that have a value. */
  get names(): readonly string[] {
    return Object.keys(this.#members).filter(name => this.#members[name] !== null && this.#members[name] !== undefined)
  }

  protected open(members: JsonObject, path: string): BodyObject {
    return new BodyObject(members, path, this.report)
  }

  protected numberOf(value: unknown): number | null {
    return typeof value === 'number' && Number.isFinite(value) ? value : null
  }

  protected booleanOf(value: unknown): boolean | null {
    return typeof value === 'boolean' ? value : null
  }

  protected wordOf<T extends string>(value: unknown, words: readonly T[]): T | null {
    return words.find(word => word === value) ?? null
  }

  /** @returns null = the value is not a list */
  protected listOf(value: unknown, _isItem: (value: unknown) => boolean): readonly unknown[] | null {
    return Array.isArray(value) ? value : null
  }

  #items(name: string, isItem: (value: unknown) => boolean, items: string): readonly unknown[] {
    const value = this.value(name)
    return value === null ? [] : this.listOf(value, isItem) ?? this.refuse(name, `it must be a list of ${items}`)
  }

  #pathOf(name: string): string {
    return this.path === '' ? name : `${this.path}.${name}`
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}

/** Tells whether a value has no effect. `direct` has none: it is the default, that the model itself calls the tool. */
function isHarmless(value: unknown): boolean {
  return value === null || value === undefined || value === false || (isObject(value) && value['type'] === 'direct')
    || (Array.isArray(value) && (value.length === 0 || (value.length === 1 && value[0] === 'direct')))
}
