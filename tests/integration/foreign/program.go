// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Computes, allocates and waits for a lock, and writes the profiles of that beside itself.
package main

import (
	"context"
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"time"
)

var keep [][]byte
var mu sync.Mutex

func leaf(n int) int {
	t := 0
	for i := 0; i < n; i++ {
		t += i * i % 7
	}
	return t
}
func parse(end time.Time) {
	for time.Now().Before(end) {
		leaf(20000)
		mu.Lock()
		keep = append(keep, make([]byte, 20000))
		mu.Unlock()
	}
}
func main() {
	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1)
	f, _ := os.Create("go-cpu.pb.gz")
	pprof.StartCPUProfile(f)
	end := time.Now().Add(400 * time.Millisecond)
	var wg sync.WaitGroup
	wg.Add(1)
	go pprof.Do(context.Background(), pprof.Labels("route", "/cart"), func(context.Context) { parse(end); wg.Done() })
	parse(end)
	wg.Wait()
	pprof.StopCPUProfile()
	f.Close()
	for _, n := range []string{"heap", "mutex"} {
		f, _ := os.Create("go-" + n + ".pb.gz")
		pprof.Lookup(n).WriteTo(f, 0)
		f.Close()
	}
}
