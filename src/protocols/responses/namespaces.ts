import type { BodyObject } from '../neutral/dialects/body-object.ts'
import type { NamespacedName } from '../neutral/request.ts'
import { fittingToolId } from '../neutral/tool-ids.ts'

/** OpenAI's models write this namespace for tools that have no namespace. */
const PLAIN = 'functions'
/** Maximum characters of a tool's name in any protocol. */
const MAX_LENGTH = 64
/** Maximum characters of a namespace, because each call in a response repeats the namespace. */
const MAX_NAMESPACE = 256
const NAME = /^[\w-]+$/
/** Number of characters that are kept of a name that is too long. A hash follows them, up to `MAX_LENGTH`. */
const KEPT = 39

/** Reads the namespace and name of a tool or call; null = no namespace. */
export function namespacedName(item: BodyObject, namespace = item.text('namespace')): NamespacedName | null {
  if (namespace === null || namespace === PLAIN) return null
  if (namespace.length > MAX_NAMESPACE) item.refuse('namespace', `it has more than ${MAX_NAMESPACE} characters`)
  return { namespace, name: item.text('name') ?? '' }
}

/**
 * The name for protocols without namespaces, such as `collaboration__list_agents`. The result is always the same, so earlier calls keep
 * their name.
 */
export function fullName({ namespace, name }: NamespacedName): string {
  const full = namespace.endsWith('__') ? namespace + name : `${namespace}__${name}`
  const prefix = `${name.replaceAll(/[^\w-]/g, '_').slice(0, KEPT)}_`
  return fittingToolId(full, { pattern: NAME, maxLength: MAX_LENGTH, prefix })
}

/** The name of a tool or call for protocols without namespaces. */
export function toolName(item: BodyObject): string {
  const namespaced = namespacedName(item)
  return namespaced === null ? item.text('name') ?? '' : fullName(namespaced)
}
