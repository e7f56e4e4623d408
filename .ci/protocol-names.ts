// Nothing outside of the folders of src/protocols names a wire protocol, an endpoint of one, or a vendor's header:
// what is different there is a property of Endpoint, ClientFormat or Protocol.
import { globSync, readFileSync } from 'node:fs'
import { knownEndpoints } from '../src/protocols/classify-path.ts'
import { PROTOCOLS } from '../src/protocols/index.ts'

/**
 * The protocols, what vendors accept, what operators write and read, how they prove who they are to clouds, what stands in for upstreams, and the console's own
 * contract with its pages.
 */
const EXEMPT = /^src\/(protocols\/[^/]+|providers|upstreams\/credentials|config|cli|import|simulator|console\/(web|api))\//

const names = new Set([
  ...PROTOCOLS.map(protocol => protocol.name),
  // The names of the gateway's own endpoints are words that stand for much else.
  ...knownEndpoints().filter(({ endpoint }) => endpoint.ownResponse === null).map(({ endpoint }) => endpoint.name),
])
const quoted = new RegExp(`(['"\`])(?:${[...names].map(name => RegExp.escape(name)).join('|')})\\1`)
const vendors = /googleapis|x-goog|anthropic|vendorb|generateContent/i
const folders = new RegExp(`/protocols/(?:${PROTOCOLS.map(protocol => protocol.name).join('|')})/`)
const comment = /^\s*(?:\/\/|\/?\*)/

for (const file of globSync('src/**/*.ts').filter(path => !EXEMPT.test(path))) {
  for (const [at, line] of readFileSync(file, 'utf8').split('\n').entries()) {
    if (comment.test(line) || !(quoted.test(line) || vendors.test(line) || folders.test(line))) continue
    console.error(`${file}:${at + 1}: names a protocol: ${line.trim()}`)
    process.exitCode = 1
  }
}
