import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Path of a module of the tests that runs as a process. `npm test` has bundled it: to load its modules one by one takes
 * longer than most of what such a process does.
 * @param name below `test`, as in `PROGRAMS` of test/runner/bundle-tests.ts
 */
export function testProgram(name: string): string {
  const { PROGRAMS_UNDER_TEST: bundle } = process.env
  return bundle ? resolve(join(bundle, `${name}.js`)) : fileURLToPath(new URL(`../../${name}.js`, import.meta.url))
}
