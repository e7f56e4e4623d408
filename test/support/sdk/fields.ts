import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { API, SymbolFlags } from 'typescript/unstable/sync'
import type { Checker, Type } from 'typescript/unstable/sync'
import type { SdkRequests } from './requests.ts'

const FILE = join(import.meta.dirname, 'requests.ts')

/**
 * All request fields in the types of the vendors' SDKs, as paths of the body.
 *
 * @param isFollowed should the members of the object at this path be listed too?
 */
export function sdkFields(isFollowed: (protocol: keyof SdkRequests, path: string) => boolean): Readonly<Record<keyof SdkRequests, readonly string[]>> {
  return readSdk((checker, type, protocol) => membersOf(checker, type, '', path => isFollowed(protocol, path)))
}

/** Reads the type of a request of each protocol. */
export function readSdk<T>(read: (checker: Checker, type: Type, protocol: keyof SdkRequests) => T): Readonly<Record<keyof SdkRequests, T>> {
  const api = new API({ cwd: import.meta.dirname })
  try {
    const snapshot = api.updateSnapshot({ openProjects: [join(import.meta.dirname, 'tsconfig.json')] })
    const checker = snapshot.getDefaultProjectForFile(FILE)?.checker as Checker
    const position = readFileSync(FILE, 'utf8').indexOf('SdkRequests')
    const requests = checker.resolveName('SdkRequests', SymbolFlags.Interface, { document: FILE, position })
    if (requests === undefined) throw new Error('SdkRequests was not found')
    const found = checker.getPropertiesOfType(checker.getDeclaredTypeOfSymbol(requests)).map(symbol => {
      const protocol = symbol.name as keyof SdkRequests
      const type = checker.getTypeOfSymbol(symbol) as Type
      return [protocol, read(checker, type, protocol)] as const
    })
    return Object.fromEntries(found) as Record<keyof SdkRequests, T>
  } finally {
    api.close()
  }
}

function membersOf(checker: Checker, type: Type, prefix: string, isFollowed: (path: string) => boolean): readonly string[] {
  const paths = new Set<string>()
  for (const object of objectsOf(type)) {
    for (const member of checker.getPropertiesOfType(object)) {
      const path = prefix + member.name
      if (isFollowed(path)) for (const inner of membersOf(checker, checker.getTypeOfSymbol(member) as Type, `${path}.`, isFollowed)) paths.add(inner)
      else paths.add(path)
    }
  }
  return [...paths]
}

/** The objects that a value of the type can be. */
function objectsOf(type: Type): readonly Type[] {
  if (type.isUnionType()) return type.getTypes().flatMap(objectsOf)
  return type.isObjectType() || type.isIntersectionType() ? [type] : []
}
