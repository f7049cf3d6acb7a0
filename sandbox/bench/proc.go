package bench

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// ticksPerSecond is the unit of processor time in /proc on every Linux that Go runs on.
const ticksPerSecond = 100

// Fields of /proc/PID/stat, counted from the one after the program's name.
const (
	statUserTime   = 11
	statSystemTime = 12
)

// residentMiB is the resident memory of a process.
func residentMiB(pid int) (float64, error) {
	return memoryMiB(pid, "VmRSS")
}

// highestMiB is the highest resident memory that a process had.
func highestMiB(pid int) (float64, error) { return memoryMiB(pid, "VmHWM") }

func memoryMiB(pid int, line string) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("read the memory of process %d (Linux only): %w", pid, err)
	}
	kib, err := memoryKiB(status, line)
	if err != nil {
		return 0, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	return kib / 1024, nil
}

// memoryKiB finds a line in the text of /proc/PID/status.
func memoryKiB(status []byte, wanted string) (float64, error) {
	for line := range bytes.Lines(status) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		fields := bytes.Fields(value)
		if string(name) != wanted || len(fields) == 0 {
			continue
		}
		kib, err := strconv.ParseFloat(string(fields[0]), 64)
		if err != nil {
			return 0, fmt.Errorf("parse %s: %w", wanted, err)
		}
		return kib, nil
	}
	return 0, fmt.Errorf("no %s in %d bytes of status", wanted, len(status))
}

// processorTime is the time that a process has spent on processors since its start.
func processorTime(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read the processor time of process %d (Linux only): %w", pid, err)
	}
	spent, err := spentTime(stat)
	if err != nil {
		return 0, fmt.Errorf("read the processor time of process %d: %w", pid, err)
	}
	return spent, nil
}

// spentTime adds user and system time in the text of /proc/PID/stat.
func spentTime(stat []byte) (time.Duration, error) {
	// The program's name stands in parentheses and may hold anything, these included: what counts follows the last one.
	end := bytes.LastIndexByte(stat, ')')
	fields := bytes.Fields(stat[end+1:])
	if end < 0 || len(fields) <= statSystemTime {
		return 0, fmt.Errorf("parse stat: %d fields after the name", len(fields))
	}
	var ticks int64
	for _, i := range []int{statUserTime, statSystemTime} {
		n, err := strconv.ParseInt(string(fields[i]), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("parse stat: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond, nil
}
