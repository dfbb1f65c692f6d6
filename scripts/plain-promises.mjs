// scripts/test.mjs loads this into the process of each test file. tap follows every promise of the process with async
// hooks, to name the subtest of an error that nothing catches; that takes a tenth to a third of the CPU time of tests with
// servers in their process. Without it, such an error ends the process, which fails the file.
import asyncHooks from 'node:async_hooks'
import { syncBuiltinESMExports } from 'node:module'

asyncHooks.createHook = () => ({ enable() {}, disable() {} })
syncBuiltinESMExports()
