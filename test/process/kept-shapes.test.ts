import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import t from 'tap'

const root = join(import.meta.dirname, '..', '..')

t.test('the kept shape equals the shape of node\'s tick objects, even after a garbage collection', t => {
  const script = `
    import { executionAsyncResource } from 'node:async_hooks'
    import { setTimeout } from 'node:timers/promises'
    import { keepShapeOfTicks } from './src/process/kept-shapes.ts'
    import { thisProcess } from './src/process/spare-memory.ts'
    const kept = await keepShapeOfTicks()
    const names = Object.keys(kept)
    const next = () => new Promise(resolve => process.nextTick(() => resolve(executionAsyncResource())))
    const before = %HaveSameMap(kept, await next())
    thisProcess.collect()
    await setTimeout(1)
    console.log(JSON.stringify({ names, before, after: %HaveSameMap(kept, await next()) }))
  `
  const args = ['--allow-natives-syntax', '--input-type=module', '-e', script]
  const printed: unknown = JSON.parse(execFileSync(process.execPath, args, { cwd: root, encoding: 'utf8' }))
  t.same(printed, { names: ['callback', 'args'], before: true, after: true })
  t.end()
})
