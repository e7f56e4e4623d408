// Checks that names in backticks in comments exist: a name that changes must change in its comments too. Only names that
// look like code are checked: those with a capital letter inside or in front, private members and calls.
import { globSync, readFileSync } from 'node:fs'

const CODE_NAME = /^(?:#[\w$]+|[A-Za-z$][\w$]*[A-Z][\w$]*|[A-Z][a-z][\w$]*)(?:\(\))?$/
const COMMENT = /\/\*[^]*?\*\/|(?<=^|\s)\/\/[^\n]*/g

const files = globSync(['src/**/*.{ts,tsx}', 'bin/*.js', '.ci/*.{ts,js}'], { exclude: file => file.includes('node_modules') })
const texts = files.map(file => ({ file, text: readFileSync(file, 'utf8') }))
const known = new Set<string>()
for (const { text } of texts) for (const [name] of text.replace(COMMENT, '').matchAll(/[A-Za-z_$][\w$]*/g)) known.add(name)
// What clients and upstreams call things, and what libraries and the runtime have.
for (const file of globSync(['gateway.schema.json', 'test/**/*.ts', 'docs/**/*.md'], { exclude: path => path.includes('node_modules') })) {
  for (const [name] of readFileSync(file, 'utf8').matchAll(/[A-Za-z_$][\w$]*/g)) known.add(name)
}

let faults = 0
for (const { file, text } of texts) {
  for (const comment of text.matchAll(COMMENT)) {
    for (const { 1: name = '', index } of comment[0].matchAll(/`([^`\n]+)`/g)) {
      if (!CODE_NAME.test(name) || known.has(name.replace(/^#|\(\)$/g, ''))) continue
      const line = text.slice(0, comment.index + index).split('\n').length
      console.error(`${file}:${line}: no code has the name \`${name}\``)
      faults++
    }
  }
}
if (faults > 0) process.exitCode = 1
