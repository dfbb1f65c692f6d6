import type { Test } from '@tapjs/test'

let current: Test | undefined

/** Makes `test` what a test file that is imported from now on gets as `t` from tap. */
export function setCurrent(test: Test): void {
  current = test
}

/** Stands in for tap in the bundles of test files. */
export default new Proxy({} as Test, {
  get(_, name) {
    const value = Reflect.get(running(), name)
    return typeof value === 'function' ? value.bind(running()) : value
  },
  set: (_, name, value) => Reflect.set(running(), name, value),
  has: (_, name) => Reflect.has(running(), name),
})

function running(): Test {
  if (current === undefined) throw new Error('no test file runs')
  return current
}
