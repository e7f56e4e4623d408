import { execFileSync } from 'node:child_process'
import net from 'node:net'
import t from 'tap'
import { descriptorBounds, descriptorOf } from '../../src/base/descriptors.ts'

t.test('descriptorBounds reserves descriptors for the gateway and for upstreams before clients', async t => {
  t.strictSame(descriptorBounds(64), { upstreams: 56, clients: 52 })
  t.strictSame(descriptorBounds(1_024), { upstreams: 1_016, clients: 952 })
  t.strictSame(descriptorBounds(1_048_576), { upstreams: 1_048_568, clients: 1_048_504 })
  t.strictSame(descriptorBounds(Infinity), { upstreams: Infinity, clients: Infinity })
})

t.test('descriptorBounds reads the descriptor limit of the process', { skip: process.platform !== 'linux' && 'needs /proc' }, async t => {
  const module = new URL('../../src/base/descriptors.ts', import.meta.url).href
  const script = `import { descriptorBounds } from '${module}'; console.log(JSON.stringify(descriptorBounds()))`
  const args = ['-c', 'ulimit -n 100; exec "$0" --input-type=module --eval "$1"', process.execPath, script]
  t.same(JSON.parse(execFileSync('sh', args, { encoding: 'utf8' })), descriptorBounds(100))
})

t.test('descriptorOf returns the descriptor of an open server, and -1 after its close', { skip: process.platform === 'win32' && 'it has none' }, async t => {
  const server = net.createServer().listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  t.ok(descriptorOf(server) > 2)
  server.close()
  t.equal(descriptorOf(server), -1)
  t.equal(descriptorOf(new net.Socket()), -1)
})
