import t from 'tap'
import { searchWeight } from '../../docs/.vitepress/navigation.ts'

t.test('the search ranks guides above the changelog', async t => {
  for (const base of ['/', '/gateway/']) {
    for (const guide of ['keys.html', 'keys.html#limits', 'clients/codex.html', 'operation/tls']) {
      t.equal(searchWeight(base + guide), 1, base + guide)
    }
    for (const background of ['changes.html', 'changes.html#added', 'benchmarks.html#proxy-ts']) {
      t.equal(searchWeight(base + background), 0.1, base + background)
    }
  }
})
