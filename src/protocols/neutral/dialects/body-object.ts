import { isObject } from '../../../base/is-object.ts'
import { withoutNulls } from '../json.ts'
import type { JsonObject } from '../json.ts'
import type { TranslationReport } from '../report.ts'

const INDEX = /\[\d+\]/g

/**
 * An object in the body of a request that is translated. It reads members by their type; null always means that the
 * client did not send the member. A member of another type is refused by its path, because the target would get a
 * request without it. Members that nothing reads are reported as dropped.
 */
export class BodyObject {
  /** `messages[0].content[1]`; empty = the body itself. */
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

  /** A value of any type, for members that may have several. */
  value(name: string): unknown {
    this.#read.push(name)
    return this.#members[name] ?? null
  }

  /** Members that change nothing. */
  ignore(...names: readonly string[]): void {
    this.#read.push(...names)
  }

  /** @throws GatewayError not_translatable, as every method that reads a type */
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

  /** One of several words. */
  word<T extends string>(name: string, words: readonly T[]): T | null {
    const value = this.value(name)
    if (value === null) return null
    return this.wordOf(value, words) ?? this.refuse(name, `it must be one of ${words.join(', ')}`)
  }

  /** One of several words. Another one is dropped and reported: the target may refuse the request for it. */
  known<T extends string>(name: string, words: readonly T[]): T | null {
    const value = this.text(name)
    if (value === null) return null
    const word = this.wordOf(value, words)
    if (word === null) this.drop(name)
    return word
  }

  /** An object whose names are the client's own, such as a schema. */
  json(name: string): JsonObject | null {
    const value = this.value(name)
    return value === null || isObject(value) ? value : this.refuse(name, 'it must be an object')
  }

  object(name: string): BodyObject | null {
    const value = this.json(name)
    return value && this.open(value, this.#pathOf(name))
  }

  /** Empty where the client did not send it. */
  objects(name: string): BodyObject[] {
    return this.#items(name, isObject, 'objects').map((item, at) => (
      isObject(item) ? this.open(item, `${this.#pathOf(name)}[${at}]`) : this.refuse(`${name}[${at}]`, 'it must be an object')
    ))
  }

  /** The objects of the conversation: null is none. Where it is absent, the target has its own error for that. */
  conversation(name: string): BodyObject[] {
    return this.#members[name] === null ? this.refuse(name, 'it must be a list of objects') : this.objects(name)
  }

  texts(name: string): string[] {
    return this.#items(name, isText, 'strings').map((item, at) => (
      isText(item) ? item : this.refuse(`${name}[${at}]`, 'it must be a string')
    ))
  }

  /** Names and texts, such as metadata; null = there are none. */
  record(name: string): Readonly<Record<string, string>> | null {
    const value = withoutNulls(this.json(name) ?? {})
    const other = Object.keys(value).find(key => !isText(value[key]))
    if (other !== undefined) return this.refuse(`${name}.${other}`, 'it must be a string')
    return Object.keys(value).length === 0 ? null : value as Record<string, string>
  }

  /** What is said in one text, or in a list of objects. */
  content(name: string): string | BodyObject[] {
    const value = this.value(name)
    return isText(value) ? value : this.objects(name)
  }

  /** @throws GatewayError not_translatable */
  refuse(name: string, why: string): never {
    return this.report.refuse(this.#pathOf(name), why)
  }

  /** The target gets the request without this member. */
  drop(name: string): void {
    this.report.drop(this.#pathOf(name).replace(INDEX, '[]'))
  }

  /** The target gets the request without this object. @param kind names it in the report */
  dropWhole(kind: string | null): void {
    this.#isDropped = true
    this.drop(kind ?? 'type')
  }

  /** Reports the members that nothing has read, but for values that say what is the case anyway. */
  dropUnread(): void {
    if (this.#isDropped) return
    for (const [name, value] of Object.entries(this.#members)) {
      if (!this.#read.includes(name) && !isHarmless(value)) this.drop(name)
    }
  }

  /** The names of its members that have a value. */
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

  /** @param isItem is a value what the list has in it? @returns null = it is no list */
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

/** What the model may call directly alone, or has called directly, is as others are. */
function isHarmless(value: unknown): boolean {
  return value === null || value === undefined || value === false || (isObject(value) && value['type'] === 'direct')
    || (Array.isArray(value) && (value.length === 0 || (value.length === 1 && value[0] === 'direct')))
}
