import { SymbolFlags } from 'typescript/unstable/sync'
import type { Checker, Type } from 'typescript/unstable/sync'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { readSdk } from './fields.ts'
import type { SdkRequests } from './requests.ts'

/** A member of an object inside a request, and a request that has it. */
export interface NestedMember {
  /** Path of the object, such as `messages[].content[]`; empty = the request itself. */
  readonly parent: string
  /** Kind of the object among others at the same path, such as `text`. */
  readonly kind: string | null
  readonly name: string
  readonly body: JsonObject
}

/** Objects whose member names the client chooses. */
const OPEN = new Set(['parameters', 'parametersJsonSchema', 'responseSchema', 'responseJsonSchema', 'response', 'input_schema', 'schema', 'args', 'metadata', 'labels'])
/** Members that distinguish objects in the same list. */
const KINDS = ['type', 'role']
const MAX_DEPTH = 8
/** The content members of a part of the generate protocol; its other members describe the content. */
const SAID = new Set(['functionCall', 'functionResponse', 'text', 'inlineData', 'fileData'])

type Wrap = (object: JsonObject) => JsonObject

/**
 * All members of all objects in the request types of the vendors' SDKs.
 *
 * @param isRead should the members inside of this member be listed too?
 */
export function nestedMembers(isRead: (protocol: keyof SdkRequests, member: NestedMember) => boolean): Readonly<Record<keyof SdkRequests, readonly NestedMember[]>> {
  return readSdk((checker, type, protocol) => {
    const found: NestedMember[] = []
    const seen = new Set<number>()
    const waiting: { readonly type: Type, readonly parent: string, readonly wrap: Wrap }[] = [{ type, parent: '', wrap: body => body }]
    // Short paths come first, because an object with several paths is listed once.
    for (const { type: given, parent, wrap } of waiting) {
      for (const object of objectsIn(checker, given)) {
        if (seen.has(object.id)) continue
        seen.add(object.id)
        const least = leastOf(checker, object, 0) as JsonObject
        const kind = KINDS.map(name => least[name]).find(value => typeof value === 'string') as string | undefined ?? null
        for (const symbol of checker.getPropertiesOfType(object)) {
          const { name } = symbol
          const memberType = checker.getNonNullableType(checker.getTypeOfSymbol(symbol) as Type) as Type
          const member = { parent, kind, name, body: wrap({ ...least, ...beside(parent, name), [name]: fullOf(checker, memberType) }) }
          found.push(member)
          if (OPEN.has(name) || !isRead(protocol, member)) continue
          const path = parent === '' ? name : `${parent}.${name}`
          for (const option of optionsOf(memberType)) {
            const item = itemOf(checker, option)
            if (item === null) waiting.push({ type: option, parent: path, wrap: value => wrap({ ...least, [name]: value }) })
            else waiting.push({ type: item, parent: `${path}[]`, wrap: value => wrap({ ...least, [name]: [value] }) })
          }
        }
      }
    }
    return found
  })
}

function beside(parent: string, name: string): JsonObject {
  return parent === 'contents[].parts[]' && !SAID.has(name) ? { text: 'x' } : {}
}

function optionsOf(type: Type): readonly Type[] {
  return type.isUnionType() ? type.getTypes() : [type]
}

/** The type of the items of a list; null = the type is not a list. */
function itemOf(checker: Checker, type: Type): Type | null {
  return type.isTypeReference() && checker.isArrayType(type) ? checker.getTypeArguments(type)[0] ?? null : null
}

function objectsIn(checker: Checker, type: Type): readonly Type[] {
  return optionsOf(type).filter(option => (option.isObjectType() || option.isIntersectionType()) && itemOf(checker, option) === null)
}

/** The smallest value of a type: an object has the members that it must have. */
function leastOf(checker: Checker, type: Type, depth: number): unknown {
  const [option = type] = optionsOf(type).toSorted((a, b) => rank(a) - rank(b))
  if (option.isLiteralType()) return option.value
  if (itemOf(checker, option) !== null) return []
  if (option.isObjectType() || option.isIntersectionType()) {
    const required = checker.getPropertiesOfType(option).filter(({ flags }) => !(flags & SymbolFlags.Optional))
    return Object.fromEntries(depth > MAX_DEPTH ? [] : required.map(symbol => (
      [symbol.name, leastOf(checker, checker.getTypeOfSymbol(symbol) as Type, depth + 1)]
    )))
  }
  const name = checker.typeToString(option)
  return name === 'number' ? 1 : name === 'boolean' ? true : name === 'null' ? null : name === 'unknown' || name === 'any' ? {} : 'x'
}

/** A value with content: lists have an item, and booleans are true. */
function fullOf(checker: Checker, type: Type): unknown {
  const item = optionsOf(type).map(option => itemOf(checker, option)).find(found => found !== null)
  if (item) return [leastOf(checker, item, 0)]
  return optionsOf(type).every(option => typeof leastOf(checker, option, 0) === 'boolean') ? true : leastOf(checker, type, 0)
}

/** Sort order of alternatives: literals, text, objects, and null last. */
function rank(type: Type): number {
  if (type.isLiteralType()) return 0
  return type.isObjectType() || type.isIntersectionType() ? 2 : type.isIntrinsicType() ? 1 : 3
}
