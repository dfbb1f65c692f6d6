/** How often a cache had what it was asked for. */
export class CacheUse {
  hits = 0
  misses = 0

  count(hit: boolean): void {
    if (hit) this.hits++
    else this.misses++
  }
}
