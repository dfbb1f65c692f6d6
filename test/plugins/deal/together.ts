import t, { type Test } from 'tap'

/** A test of a file whose tests run beside each other. */
export function together(name: string, body: (t: Test) => Promise<void>): void {
  t.test(name, { buffered: true }, body)
}
