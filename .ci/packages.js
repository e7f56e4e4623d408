// Checks what the project installs: every entry of package-lock.json has an
// integrity hash, and what an installed gateway and the console's pages bring
// may be passed on under a permissive licence. Writes the bill of materials to
// dist/sbom.cdx.json, which is part of the package.
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'

const LICENCES = new Set(['MIT', 'ISC', 'BSD-2-Clause', 'BSD-3-Clause', 'Apache-2.0', 'BlueOak-1.0.0', '0BSD', 'Unlicense'])

const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'))
const unhashed = Object.entries(packages)
  .filter(([path, entry]) => path.includes('node_modules/') && !entry.link && !entry.integrity)
  .map(([path]) => `package-lock.json: ${path} has no integrity hash`)

const sbom = execFileSync(
  'npm', ['sbom', '--omit=dev', '--package-lock-only', '--sbom-format=cyclonedx'],
  { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], maxBuffer: 64 * 1024 * 1024 },
)
const bill = JSON.parse(sbom)
// npm takes the folder's name.
bill.metadata.component.name = JSON.parse(readFileSync('package.json', 'utf8')).name
mkdirSync('dist', { recursive: true })
writeFileSync('dist/sbom.cdx.json', `${JSON.stringify(bill, null, 2)}\n`)

/** Is an SPDX expression one that may be passed on? OR is read as the stronger operator, which permits no more. */
function isPermitted(expression) {
  return expression.replace(/[()]/g, '').split(' AND ').every(part => part.split(' OR ').some(id => LICENCES.has(id)))
}

const unlicensed = bill.components.flatMap(({ name, version, licenses = [] }) => {
  const ids = licenses.map(({ license, expression }) => license?.id ?? license?.name ?? expression)
  return ids.length > 0 && ids.every(isPermitted)
    ? []
    : [`${name}@${version}: licence ${ids.join(', ') || 'unknown'} is not in the list of .ci/packages.js`]
})

const faults = [...unhashed, ...unlicensed]
for (const fault of faults) console.error(fault)
if (faults.length > 0) process.exitCode = 1
