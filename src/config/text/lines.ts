import { parseYaml, type Located, type Path } from './document.ts'
import { SourceText } from './source-text.ts'

/** Number of steps in the longest path that is recorded: `upstreams.NAME.auth`. */
const MAX_STEPS = 3

/** Line numbers from 1, by the path of the key as JSON: `["server","tls","cert"]`. Items of a list have the line of the list's key. */
export type ConfigLines = ReadonlyMap<string, number>

/** @param text a configuration that is valid YAML */
export function configLines(text: string): ConfigLines {
  const source = new SourceText(text)
  const lines = new Map<string, number>()
  const add = (path: Path, { value, children }: Located): void => {
    if (path.length === MAX_STEPS || Array.isArray(value)) return
    for (const [name, child] of children) {
      const childPath = [...path, name]
      lines.set(JSON.stringify(childPath), source.position((child.key ?? child.at).start).line)
      add(childPath, child)
    }
  }
  add([], parseYaml(source, {}).root)
  return lines
}

/** The line of a path, or of the longest part of the path that exists; null = none. */
export function lineOf(lines: ConfigLines, path: Path): number | null {
  for (let length = path.length; length > 0; length--) {
    const line = lines.get(JSON.stringify(path.slice(0, length)))
    if (line !== undefined) return line
  }
  return null
}
