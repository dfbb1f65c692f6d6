/**
 * A value that may be there already. A step of every request that is awaited although it is costs a promise, its
 * reactions and a turn of the queue, some 500 bytes; the caller awaits what is an instance of `Promise`.
 */
export type MaybePromise<T> = T | Promise<T>
