// A table by any string is a Map: in an object, `constructor` and `__proto__` are there too.
import { globSync, readFileSync } from 'node:fs'

const TABLE = /^(?:export )?const [A-Z][A-Z_]*: .*\bRecord<string,/

for (const file of globSync('src/**/*.ts', { exclude: ['src/console/web/**'] })) {
  for (const [at, line] of readFileSync(file, 'utf8').split('\n').entries()) {
    if (!TABLE.test(line)) continue
    console.error(`${file}:${at + 1}: use a ReadonlyMap: ${line.trim()}`)
    process.exitCode = 1
  }
}
