/**
 * Keeps the code that this thread has compiled until now, so that the next start need not compile it. The bundle puts
 * that of its loader, `bundle/load.cjs`, in the place of this: nothing is kept of modules that are loaded one by one.
 */
export function keepCompiledCode(): void {}
