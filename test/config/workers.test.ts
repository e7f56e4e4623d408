import { availableParallelism } from 'node:os'
import t from 'tap'
import { loadConfig } from '../../src/config/load.ts'

function load(server: string) {
  const dir = t.testdir({
    'gateway.yaml': `server: { ${server} }\nupstreams: { demo: { simulator: true } }\n` +
      'routes: [{ to: demo }]\nauth: open\n',
  })
  return loadConfig(`${dir}/gateway.yaml`, {}).config.server
}

t.test('workers: one unless told, a number, or one for each core', async t => {
  t.equal(load('drain: 1s').workers, 1)
  t.equal(load('workers: 3').workers, 3)
  t.equal(load('workers: auto').workers, availableParallelism())
  t.throws(() => load('workers: 0'), /gateway\.yaml:1:20/)
  t.throws(() => load('workers: many'), /gateway\.yaml:1:20/)
})

t.test('several workers share a socket of their own: not a port with other gateways', async t => {
  t.throws(
    () => load('workers: 2, reuse_port: true'),
    /:1:20.*server\.workers and server\.reuse_port cannot be combined/,
  )
  t.equal(load('workers: 1, reuse_port: true').reusePort, true)
})
