import type { Test } from 'tap'

/** Changes the environment until the test ends. @param values undefined = unset the variable */
export function setEnvironment(t: Pick<Test, 'teardown'>, values: Readonly<Record<string, string | undefined>>): void {
  for (const [name, value] of Object.entries(values)) {
    const before = process.env[name]
    set(name, value)
    t.teardown(() => set(name, before))
  }
}

function set(name: string, value: string | undefined): void {
  if (value === undefined) delete process.env[name]
  else process.env[name] = value
}
