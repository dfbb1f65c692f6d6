// What `npm run mutate` gives Stryker (https://stryker-mutator.io/docs/stryker-js/configuration). A mutant runs the test
// files that reach it, as plain processes, as scripts/test.mjs does.
export default {
  mutate: process.env.MUTATE_FILES.split(','),
  testRunner: 'tap',
  plugins: ['@stryker-mutator/tap-runner'],
  tap: {
    testFiles: process.env.MUTATE_TESTS.split(','),
    nodeArgs: [
      '-r',
      '{{hookFile}}',
      '--conditions=dealgate-source',
      '--import=./scripts/plain-promises.mjs',
      '{{testFile}}',
    ],
  },
  // Each project extends tsconfig.base.json as it is; Stryker's own rewriting needs a package of typescript beside it.
  tsconfigFile: 'none',
  // Packages are found above its copy of the tree, which has none.
  buildCommand: 'node ../../../node_modules/typescript-native/bin/tsc -b',
  coverageAnalysis: 'perTest',
  // Texts of messages are no behaviour that a test should repeat.
  mutator: { excludedMutations: ['StringLiteral'] },
  concurrency: Number(process.env.MUTATE_JOBS ?? 2),
  timeoutMS: 60_000,
  ignorePatterns: ['.tap', '.ci', 'docs', 'man'],
  tempDirName: '.tap/stryker',
  reporters: ['clear-text', 'progress-append-only', 'html', 'json'],
  htmlReporter: { fileName: '.tap/mutation/index.html' },
  jsonReporter: { fileName: '.tap/mutation/mutation.json' },
  clearTextReporter: { logTests: false, allowColor: false },
}
