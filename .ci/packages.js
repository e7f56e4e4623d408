// Checks what the project installs: every entry of package-lock.json has an
// integrity hash, and what an installed gateway and the console's pages bring
// may be passed on under a permissive licence. Writes the bill of materials to
// dist/sbom.cdx.json, which is part of the package.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'

const LICENCES = new Set(['MIT', 'ISC', 'BSD-2-Clause', 'BSD-3-Clause', 'Apache-2.0', 'BlueOak-1.0.0', '0BSD', 'Unlicense'])

const lock = JSON.parse(readFileSync('package-lock.json', 'utf8'))
const entries = Object.entries(lock.packages)
const unhashed = entries
  .filter(([path, entry]) => path.includes('node_modules/') && !entry.link && !entry.integrity)
  .map(([path]) => `package-lock.json: ${path} has no integrity hash`)

const shipped = entries.filter(([, { dev }]) => !dev).map(([path, entry]) => [path, { ...entry, devDependencies: {} }])
const sbom = billOf({ ...lock, packages: Object.fromEntries(shipped) })
mkdirSync('dist', { recursive: true })
writeFileSync('dist/sbom.cdx.json', `${JSON.stringify(sbom, null, 2)}\n`)

const listed = new Set(sbom.components.map(component => `${nameOf(component)}@${component.version}`))
const unlisted = shipped
  .filter(([path, { link }]) => path.includes('node_modules/') && !link)
  .map(([path, { name, version }]) => `${name ?? path.slice(path.lastIndexOf('node_modules/') + 13)}@${version}`)
  .filter(each => !listed.has(each))
  .map(each => `${each} is not in the bill of materials`)

const unlicensed = sbom.components.flatMap(({ name, version, licenses = [] }) => {
  const ids = licenses.map(({ license, expression }) => license?.id ?? license?.name ?? expression)
  return ids.length > 0 && ids.every(isPermitted)
    ? []
    : [`${name}@${version}: licence ${ids.join(', ') || 'unknown'} is not in the list of .ci/packages.js`]
})

const faults = [...unhashed, ...unlisted, ...unlicensed]
for (const fault of faults) console.error(fault)
if (faults.length > 0) process.exitCode = 1

/** From a lock without development packages: `npm sbom --omit=dev` leaves out all that they need too. */
function billOf(lock) {
  const folder = mkdtempSync(join(tmpdir(), 'packages-'))
  try {
    writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(lock))
    const { packages } = lock
    for (const path of ['', ...packages[''].workspaces]) {
      mkdirSync(join(folder, path), { recursive: true })
      writeFileSync(join(folder, path, 'package.json'), JSON.stringify({ name: basename(path), ...packages[path] }))
    }
    const output = execFileSync('npm', ['sbom', '--package-lock-only', '--sbom-format=cyclonedx'], {
      cwd: folder, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024,
    })
    const bill = JSON.parse(output)
    // npm takes the folder's name.
    bill.metadata.component.name = packages[''].name
    return bill
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function nameOf({ group, name }) {
  return group ? `${group}/${name}` : name
}

/** Is an SPDX expression one that may be passed on? OR is read as the stronger operator, which permits no more. */
function isPermitted(expression) {
  return expression.replace(/[()]/g, '').split(' AND ').every(part => part.split(' OR ').some(id => LICENCES.has(id)))
}
