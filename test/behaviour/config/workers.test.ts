import { availableParallelism } from 'node:os'
import t from 'tap'
import { loadConfig } from '../../../src/config/load/load.ts'
import { problemsOf } from './loading.ts'

function load(server: string) {
  return loaded(server).config.server
}

function loaded(server: string) {
  const dir = t.testdir({
    'gateway.yaml': `server: { ${server} }\nupstreams: { demo: { simulator: true } }\n` +
      'routes: [{ to: demo }]\nauth: open\n',
  })
  return loadConfig(`${dir}/gateway.yaml`, {})
}

t.test('server.workers is 1 by default, and can be a number or auto for one worker per core', async t => {
  t.equal(load('drain: 1s').workers, 1)
  t.equal(load('workers: 3').workers, 3)
  t.equal(load('workers: auto').workers, availableParallelism())
  const told = (server: string) =>
    problemsOf(() => loaded(server)).map(({ column, message }) => [column, message])
  t.same(told('workers: 0'), [[20, 'server.workers must be >= 1']])
  t.same(told('workers: 1000'), [[20, 'server.workers must be <= 256']])
  const otherwise = [[20, 'server.workers must be a whole number from 1 to 256, or auto']]
  t.same(told('workers: 2.5'), otherwise)
  t.same(told('workers: many'), otherwise)
})

t.test('workers and reuse_port cannot be combined', async t => {
  t.throws(
    () => load('workers: 2, reuse_port: true'),
    /:1:20.*server\.workers and server\.reuse_port cannot be combined/,
  )
  t.equal(load('workers: 1, reuse_port: true').reusePort, true)
})
